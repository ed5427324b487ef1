WITH refunds AS (
    SELECT cs_item_sk, sum(cs_ext_list_price) AS sale,
        sum(cr_refunded_cash + cr_reversed_charge + cr_store_credit) AS refund
    FROM catalog_sales, catalog_returns
    WHERE cs_item_sk = cr_item_sk AND cs_order_number = cr_order_number
    GROUP BY cs_item_sk
    HAVING sum(cs_ext_list_price)
        > 2 * sum(cr_refunded_cash + cr_reversed_charge + cr_store_credit)
),
sales AS (
    SELECT i_product_name AS product, i_item_sk AS item_sk, s_store_name AS store_name,
        s_zip AS store_zip, ad1.ca_city AS buyer_city, ad2.ca_city AS home_city,
        d1.d_year AS syear, d2.d_year AS fsyear, count(*) AS cnt, sum(ss_wholesale_cost) AS s1,
        sum(ss_list_price) AS s2, sum(ss_coupon_amt) AS s3
    FROM store_sales, store_returns, refunds, date_dim AS d1, date_dim AS d2, store, customer,
        customer_demographics AS cd1, customer_demographics AS cd2, promotion,
        household_demographics AS hd1, household_demographics AS hd2, customer_address AS ad1,
        customer_address AS ad2, income_band AS ib1, income_band AS ib2, item
    WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d1.d_date_sk
        AND ss_customer_sk = c_customer_sk AND ss_cdemo_sk = cd1.cd_demo_sk
        AND ss_hdemo_sk = hd1.hd_demo_sk AND ss_addr_sk = ad1.ca_address_sk
        AND ss_item_sk = i_item_sk AND ss_item_sk = sr_item_sk
        AND ss_ticket_number = sr_ticket_number AND ss_item_sk = refunds.cs_item_sk
        AND c_current_cdemo_sk = cd2.cd_demo_sk AND c_current_hdemo_sk = hd2.hd_demo_sk
        AND c_current_addr_sk = ad2.ca_address_sk AND c_first_sales_date_sk = d2.d_date_sk
        AND ss_promo_sk = p_promo_sk AND hd1.hd_income_band_sk = ib1.ib_income_band_sk
        AND hd2.hd_income_band_sk = ib2.ib_income_band_sk
        AND cd1.cd_marital_status <> cd2.cd_marital_status
        AND i_color IN ('purple', 'burlywood', 'indian') AND i_current_price BETWEEN 65 AND 74
    GROUP BY i_product_name, i_item_sk, s_store_name, s_zip, ad1.ca_city, ad2.ca_city, d1.d_year,
        d2.d_year
)
SELECT one.product, one.store_name, one.store_zip, one.buyer_city, one.home_city, one.syear,
    one.cnt, one.s1, one.s2, one.s3, two.s1 AS s1_later, two.syear AS later, two.cnt AS cnt_later
FROM sales AS one, sales AS two
WHERE one.item_sk = two.item_sk AND one.syear = 1999 AND two.syear = 2000 AND two.cnt <= one.cnt
    AND one.store_name = two.store_name AND one.store_zip = two.store_zip
ORDER BY one.product, one.store_name, two.cnt
