SELECT
    CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) > 40000
        THEN (SELECT avg(ss_ext_tax) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20)
        ELSE (SELECT avg(ss_net_paid) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20)
    END AS lowest,
    CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40) > 30000
        THEN (SELECT avg(ss_ext_tax) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40)
        ELSE (SELECT avg(ss_net_paid) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40)
    END AS low,
    CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 41 AND 60) > 20000
        THEN (SELECT avg(ss_ext_tax) FROM store_sales WHERE ss_quantity BETWEEN 41 AND 60)
        ELSE (SELECT avg(ss_net_paid) FROM store_sales WHERE ss_quantity BETWEEN 41 AND 60)
    END AS middle
FROM reason
WHERE r_reason_sk = 1
