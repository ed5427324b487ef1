SELECT cd_gender, cd_marital_status, cd_education_status, count(*) AS people,
    cd_purchase_estimate, cd_credit_rating, cd_dep_count
FROM customer AS c, customer_address AS a, customer_demographics
WHERE c.c_current_addr_sk = a.ca_address_sk AND cd_demo_sk = c.c_current_cdemo_sk
    AND ca_county IN ('Walker County', 'Richland County', 'Gaines County')
    AND EXISTS (
        SELECT * FROM store_sales, date_dim
        WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk
            AND d_year = 2002 AND d_moy BETWEEN 4 AND 7
    )
    AND (EXISTS (
        SELECT * FROM web_sales, date_dim
        WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk
            AND d_year = 2002 AND d_moy BETWEEN 4 AND 7
    ) OR EXISTS (
        SELECT * FROM catalog_sales, date_dim
        WHERE c.c_customer_sk = cs_ship_customer_sk AND cs_sold_date_sk = d_date_sk
            AND d_year = 2002 AND d_moy BETWEEN 4 AND 7
    ))
GROUP BY cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate,
    cd_credit_rating, cd_dep_count
ORDER BY cd_gender, cd_marital_status, cd_education_status, cd_purchase_estimate, cd_credit_rating
LIMIT 100
